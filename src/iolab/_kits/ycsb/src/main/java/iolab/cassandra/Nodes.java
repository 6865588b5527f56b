package iolab.cassandra;

import com.datastax.driver.core.Cluster;
import com.datastax.driver.core.ConsistencyLevel;
import com.datastax.driver.core.QueryOptions;
import com.datastax.driver.core.Session;
import com.datastax.driver.core.SocketOptions;
import com.datastax.driver.core.exceptions.NoHostAvailableException;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** A session with the nodes that {@code addresses} name, each HOST:PORT. */
final class Nodes implements AutoCloseable {
  private static final int CONNECT_LIMIT_MS = 5_000;
  /** Making or dropping a table of a loaded cluster takes seconds, one that is full of it more. */
  private static final int ANSWER_LIMIT_MS = 60_000;

  private final Cluster cluster;
  final Session session;

  Nodes(Arguments arguments) {
    String addresses = arguments.text("addresses");
    List<InetSocketAddress> sockets = sockets(addresses);
    SocketOptions patience =
        new SocketOptions()
            .setConnectTimeoutMillis(CONNECT_LIMIT_MS)
            .setReadTimeoutMillis(ANSWER_LIMIT_MS);
    // Only what is asked of the system's own tables is known: a schema of a newer server may hold
    // what this driver cannot read.
    QueryOptions options =
        new QueryOptions()
            .setMetadataEnabled(false)
            .setConsistencyLevel(ConsistencyLevel.valueOf(arguments.text("consistency")));
    cluster =
        Cluster.builder()
            .addContactPointsWithPorts(sockets)
            .withPort(sockets.get(0).getPort())
            .withSocketOptions(patience)
            .withQueryOptions(options)
            .withoutJMXReporting()
            .withoutMetrics()
            .build();
    try {
      session = cluster.connect();
    } catch (NoHostAvailableException nobody) {
      throw new Refusal("No Cassandra answers at " + addresses + ": " + Tool.said(nobody));
    }
  }

  private static List<InetSocketAddress> sockets(String addresses) {
    List<InetSocketAddress> found = new ArrayList<>();
    for (String address : Arrays.asList(addresses.split(","))) {
      int colon = address.lastIndexOf(':');
      try {
        String host = address.substring(0, colon).replaceAll("^\\[|]$", "");
        int port = Integer.parseInt(address.substring(colon + 1));
        found.add(new InetSocketAddress(host, port));
      } catch (IllegalArgumentException | IndexOutOfBoundsException wrong) {
        throw new Refusal("'" + address + "' is not HOST:PORT.");
      }
    }
    for (InetSocketAddress socket : found) {
      if (socket.isUnresolved()) {
        throw new Refusal("No address is known for '" + socket.getHostString() + "'.");
      }
      if (socket.getPort() != found.get(0).getPort()) {
        // Nodes tell each other's addresses without a port: a cluster has one for all.
        throw new Refusal("The nodes at " + addresses + " are not all of one port.");
      }
    }
    return found;
  }

  @Override
  public void close() {
    cluster.close();
  }
}
