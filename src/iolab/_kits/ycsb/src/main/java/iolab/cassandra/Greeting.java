package iolab.cassandra;

import java.io.DataInputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;

/**
 * The shortest talk with a CQL server: OPTIONS, which it must answer with SUPPORTED.
 *
 * <p>As Apache Cassandra's "CQL binary protocol v4" has it: frames of version, flags, stream (2
 * bytes), opcode, length (4 bytes).
 */
final class Greeting {
  private static final int LIMIT_MS = 2_000;
  private static final byte[] OPTIONS = {4, 0, 0, 0, 5, 0, 0, 0, 0};
  private static final int ANSWER = 0x84;
  private static final int SUPPORTED = 6;

  private Greeting() {}

  /** Whether a CQL server answers there. */
  static boolean answered(String host, int port) {
    try (Socket socket = new Socket()) {
      socket.connect(new InetSocketAddress(host, port), LIMIT_MS);
      socket.setSoTimeout(LIMIT_MS);
      socket.getOutputStream().write(OPTIONS);
      DataInputStream input = new DataInputStream(socket.getInputStream());
      int version = input.readUnsignedByte();
      input.skipBytes(3);
      return version == ANSWER && input.readUnsignedByte() == SUPPORTED;
    } catch (IOException nobody) {
      return false;
    }
  }
}
