package iolab.cassandra;

import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * What is to be known of a host before a node is started there.
 *
 * <p>{@code listen= port= storage= jmx= tries=}: whether the port is free at that address, and the
 * first free ones on loopback from the two others on. The answer is {@code {"java": version,
 * "vendor": text, "taken": sentence or null, "storage_port": n, "jmx_port": n, "max_map_count": n,
 * "swappiness": n}}, null for what cannot be had.
 */
public final class Preflight {
  private static final int KERNELS_LIMIT_BYTES = 64;

  private Preflight() {}

  public static void main(String[] words) {
    Tool.run(words, Preflight::looked);
  }

  private static Map<String, Object> looked(Arguments arguments) throws IOException {
    Map<String, Object> told = new LinkedHashMap<>();
    told.put("java", System.getProperty("java.version"));
    told.put("vendor", System.getProperty("java.vendor"));
    int port = (int) arguments.whole("port");
    InetAddress listen = InetAddress.getByName(arguments.text("listen"));
    told.put("taken", heldBack(listen, port));
    InetAddress loopback = InetAddress.getByName("127.0.0.1");
    long tries = arguments.whole("tries");
    told.put("storage_port", free(loopback, (int) arguments.whole("storage"), tries));
    told.put("jmx_port", free(loopback, (int) arguments.whole("jmx"), tries));
    told.put("max_map_count", kernels("vm/max_map_count"));
    told.put("swappiness", kernels("vm/swappiness"));
    return told;
  }

  /** Why nothing can listen there; null when it can. */
  private static String heldBack(InetAddress address, int port) {
    try (ServerSocket socket = new ServerSocket()) {
      // Connections of a server that has ended may still linger; they hold nobody up.
      socket.setReuseAddress(true);
      socket.bind(new InetSocketAddress(address, port));
      return null;
    } catch (IOException taken) {
      return taken.getMessage();
    }
  }

  private static Integer free(InetAddress address, int first, long tries) {
    for (int port = first; port < first + tries; port++) {
      if (heldBack(address, port) == null) {
        return port;
      }
    }
    return null;
  }

  private static Long kernels(String name) {
    // The kernel gives such a file in one read, and nothing to a second one.
    byte[] content = new byte[KERNELS_LIMIT_BYTES];
    try (InputStream file = Files.newInputStream(Paths.get("/proc/sys", name))) {
      int size = Math.max(0, file.read(content));
      return Long.parseLong(new String(content, 0, size, StandardCharsets.US_ASCII).trim());
    } catch (IOException | NumberFormatException unknown) {
      return null;
    }
  }
}
