"""Operations on key-value stores."""
