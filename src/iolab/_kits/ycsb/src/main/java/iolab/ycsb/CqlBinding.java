package iolab.ycsb;

import com.datastax.driver.core.BoundStatement;
import com.datastax.driver.core.Cluster;
import com.datastax.driver.core.ColumnDefinitions;
import com.datastax.driver.core.ConsistencyLevel;
import com.datastax.driver.core.HostDistance;
import com.datastax.driver.core.NettyOptions;
import com.datastax.driver.core.PoolingOptions;
import com.datastax.driver.core.PreparedStatement;
import com.datastax.driver.core.QueryOptions;
import com.datastax.driver.core.ResultSet;
import com.datastax.driver.core.Row;
import com.datastax.driver.core.Session;
import com.datastax.driver.core.SocketOptions;
import com.datastax.driver.core.exceptions.InvalidQueryException;
import com.datastax.driver.core.exceptions.NoHostAvailableException;
import com.datastax.driver.core.exceptions.OperationTimedOutException;
import com.datastax.driver.core.exceptions.ReadTimeoutException;
import com.datastax.driver.core.exceptions.SyntaxError;
import com.datastax.driver.core.exceptions.UnavailableException;
import com.datastax.driver.core.exceptions.WriteTimeoutException;
import com.datastax.driver.core.policies.FallthroughRetryPolicy;
import io.netty.channel.EventLoopGroup;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.Vector;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import site.ycsb.ByteArrayByteIterator;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;

/**
 * YCSB on Apache Cassandra, over CQL with prepared statements.
 *
 * <p>A record is a row with the key {@code y_id} and a column for each field. All threads share one
 * session. Nothing is tried anew: an operation that fails returns a status that says so. Properties:
 * {@code iolab.hosts} (HOST:PORT, by commas), {@code iolab.keyspace}, {@code iolab.consistency},
 * {@code iolab.connections} (to each node), {@code iolab.timeout_ms}.
 */
public final class CqlBinding extends DB {
  private static final String KEY = "y_id";
  private static final int CONNECT_LIMIT_MS = 10_000;
  private static final long END_LIMIT_S = 5;
  private static final Status TIMED_OUT = new Status("TIMEOUT", "No answer came in time.");
  private static final Map<String, PreparedStatement> PREPARED = new ConcurrentHashMap<>();

  private static Cluster cluster;
  private static Session session;
  private static String failure;
  private static int users;

  @Override
  public void init() throws DBException {
    synchronized (CqlBinding.class) {
      if (failure != null) {
        // Each thread would wait anew for a server that is not there.
        throw new DBException(failure);
      }
      if (session == null) {
        try {
          connect(new Settings(getProperties()));
          LatencyLogs.open(getProperties());
        } catch (RuntimeException | DBException fault) {
          failure = "Cassandra cannot be used: " + Complaints.oneLine(fault);
          System.err.println(Complaints.MARK + failure);
          close();
          throw new DBException(failure, fault);
        }
      }
      users++;
    }
  }

  @Override
  public void cleanup() {
    synchronized (CqlBinding.class) {
      if (--users == 0) {
        close();
      }
    }
  }

  @Override
  public Status read(
      String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    try {
      String cql = "SELECT " + columns(fields) + " FROM " + table + " WHERE " + KEY + " = ?";
      Row row = session.execute(prepared(cql).bind(key)).one();
      if (row == null) {
        return Status.NOT_FOUND;
      }
      take(row, result);
      return Status.OK;
    } catch (RuntimeException fault) {
      return failed("read", fault);
    }
  }

  @Override
  public Status scan(
      String table,
      String first,
      int count,
      Set<String> fields,
      Vector<HashMap<String, ByteIterator>> result) {
    try {
      String cql =
          "SELECT " + columns(fields) + " FROM " + table
              + " WHERE token(" + KEY + ") >= token(?) LIMIT ?";
      ResultSet rows = session.execute(prepared(cql).bind(first, count));
      for (Row row : rows) {
        HashMap<String, ByteIterator> record = new HashMap<>();
        take(row, record);
        result.add(record);
      }
      return result.isEmpty() ? Status.NOT_FOUND : Status.OK;
    } catch (RuntimeException fault) {
      return failed("scan", fault);
    }
  }

  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    return write("update", table, key, values);
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    return write("insert", table, key, values);
  }

  @Override
  public Status delete(String table, String key) {
    try {
      session.execute(prepared("DELETE FROM " + table + " WHERE " + KEY + " = ?").bind(key));
      return Status.OK;
    } catch (RuntimeException fault) {
      return failed("delete", fault);
    }
  }

  /** An insert and an update are the same to Cassandra: these columns of this row. */
  private static Status write(
      String operation, String table, String key, Map<String, ByteIterator> values) {
    try {
      Collection<String> names = new TreeSet<>(values.keySet());
      StringBuilder marks = new StringBuilder("?");
      for (int i = 0; i < names.size(); i++) {
        marks.append(", ?");
      }
      String cql =
          "INSERT INTO " + table + " (" + KEY + ", " + String.join(", ", names)
              + ") VALUES (" + marks + ")";
      BoundStatement statement = prepared(cql).bind().setString(0, key);
      int column = 1;
      for (String name : names) {
        statement.setBytesUnsafe(column++, ByteBuffer.wrap(values.get(name).toArray()));
      }
      session.execute(statement);
      return Status.OK;
    } catch (RuntimeException fault) {
      return failed(operation, fault);
    }
  }

  private static PreparedStatement prepared(String cql) {
    PreparedStatement known = PREPARED.get(cql);
    return known != null ? known : PREPARED.computeIfAbsent(cql, text -> session.prepare(text));
  }

  private static String columns(Set<String> fields) {
    return fields == null ? "*" : KEY + ", " + String.join(", ", new TreeSet<>(fields));
  }

  private static void take(Row row, Map<String, ByteIterator> result) {
    ColumnDefinitions columns = row.getColumnDefinitions();
    for (int column = 0; column < columns.size(); column++) {
      ByteBuffer bytes = row.getBytesUnsafe(column);
      String name = columns.getName(column);
      if (bytes != null && !name.equals(KEY)) {
        byte[] value = new byte[bytes.remaining()];
        bytes.duplicate().get(value);
        result.put(name, new ByteArrayByteIterator(value));
      }
    }
  }

  private static Status failed(String operation, RuntimeException fault) {
    Complaints.say(operation, fault);
    if (fault instanceof OperationTimedOutException
        || fault instanceof ReadTimeoutException
        || fault instanceof WriteTimeoutException) {
      return TIMED_OUT;
    }
    if (fault instanceof NoHostAvailableException || fault instanceof UnavailableException) {
      return Status.SERVICE_UNAVAILABLE;
    }
    if (fault instanceof InvalidQueryException || fault instanceof SyntaxError) {
      return Status.BAD_REQUEST;
    }
    return Status.ERROR;
  }

  private static void connect(Settings settings) throws DBException {
    String keyspace = settings.required("iolab.keyspace");
    int connections = (int) settings.whole("iolab.connections", 1, 1);
    int timeoutMs = (int) settings.whole("iolab.timeout_ms", 12_000, 1);
    PoolingOptions pool =
        new PoolingOptions().setConnectionsPerHost(HostDistance.LOCAL, connections, connections);
    List<InetSocketAddress> addresses = addresses(settings.required("iolab.hosts"));
    cluster =
        Cluster.builder()
            .addContactPointsWithPorts(addresses)
            // Else the nodes that those name would be looked for at 9042, and do no work elsewhere.
            .withPort(addresses.get(0).getPort())
            .withQueryOptions(
                new QueryOptions()
                    .setConsistencyLevel(consistency(settings.required("iolab.consistency"))))
            .withSocketOptions(
                new SocketOptions()
                    .setConnectTimeoutMillis(CONNECT_LIMIT_MS)
                    .setReadTimeoutMillis(timeoutMs))
            .withPoolingOptions(pool)
            .withRetryPolicy(FallthroughRetryPolicy.INSTANCE)
            .withNettyOptions(new QuickEnd())
            .withoutJMXReporting()
            .withoutMetrics()
            .build();
    session = cluster.connect(keyspace);
    // A table that is missing or of other columns is told now, once, and not at each operation.
    TreeSet<String> fields = new TreeSet<>();
    long count = settings.whole("fieldcount", 10, 1);
    for (long field = 0; field < count; field++) {
      fields.add("field" + field);
    }
    String table = settings.text("table", "usertable");
    prepared("SELECT " + columns(fields) + " FROM " + table + " WHERE " + KEY + " = ?");
  }

  private static ConsistencyLevel consistency(String name) throws DBException {
    try {
      return ConsistencyLevel.valueOf(name);
    } catch (IllegalArgumentException unknown) {
      throw new DBException("There is no consistency level '" + name + "'.");
    }
  }

  private static List<InetSocketAddress> addresses(String text) throws DBException {
    List<InetSocketAddress> found = new ArrayList<>();
    for (String address : text.split(",")) {
      int colon = address.lastIndexOf(':');
      try {
        InetAddress host = InetAddress.getByName(address.substring(0, Math.max(colon, 0)));
        found.add(new InetSocketAddress(host, Integer.parseInt(address.substring(colon + 1))));
      } catch (UnknownHostException | IllegalArgumentException fault) {
        throw new DBException("'" + address + "' is not HOST:PORT of a host that is known.");
      }
    }
    return found;
  }

  /** Ends at once: by default two seconds pass in which nothing is left to be done. */
  private static final class QuickEnd extends NettyOptions {
    @Override
    public void onClusterClose(EventLoopGroup threads) {
      threads.shutdownGracefully(0, END_LIMIT_S, TimeUnit.SECONDS).syncUninterruptibly();
    }
  }

  private static void close() {
    PREPARED.clear();
    if (cluster != null) {
      cluster.close();
    }
    cluster = null;
    session = null;
  }
}
