"""Operations on the metadata of files."""
