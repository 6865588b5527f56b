package iolab.cassandra;

/** Something that cannot be done, in a sentence for the user. */
final class Refusal extends RuntimeException {
  private static final long serialVersionUID = 1L;

  Refusal(String says) {
    super(says);
  }
}
