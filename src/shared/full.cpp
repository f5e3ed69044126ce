// All that the full library has comes from the folders it is linked of.
