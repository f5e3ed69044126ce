# cmake -DROOT=src -DFOLDERS=nests,codegen -DOUTPUT=FILE -P source_hash.cmake
#
# Writes a header with a hash of the sources in some folders, which changes with any of them.
string(REPLACE "," ";" folders "${FOLDERS}")
set(all "")
foreach(folder IN LISTS folders)
  file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/${folder}/*.cpp ${ROOT}/${folder}/*.h)
  list(SORT files)
  foreach(name IN LISTS files)
    file(SHA256 ${ROOT}/${name} content)
    string(APPEND all "${name} ${content}\n")
  endforeach()
endforeach()
string(SHA256 hash "${all}")
string(SUBSTRING ${hash} 0 16 hash)
file(WRITE ${OUTPUT} "#pragma once\n\ninline constexpr char kSourceHash[] = \"${hash}\";\n")
