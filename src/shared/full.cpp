// The full library contains only the folders that it links.
