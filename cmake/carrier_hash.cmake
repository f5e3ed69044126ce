# Writes the hash of CARRIER to HEADER, so that compiler caches, which do not see files of .incbin, know its content.
file(SHA256 ${CARRIER} hash)
file(WRITE ${HEADER} "#define TENON_MODEL_CARRIER_HASH \"${hash}\"\n")
