package bridge;

import java.io.IOException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.AdvancedScanResultConsumer;
import org.apache.hadoop.hbase.client.AsyncConnection;
import org.apache.hadoop.hbase.client.AsyncTable;
import org.apache.hadoop.hbase.client.AsyncTableRegionLocator;
import org.apache.hadoop.hbase.client.ConnectionFactory;

/**
 * The connection to HBase. It is made by the first that needs it, and again after it
 * could not be made: a cluster that is starting has no ID yet.
 */
final class Cluster implements AutoCloseable {
  final Configuration conf;
  private CompletableFuture<AsyncConnection> connection;
  private final ConcurrentHashMap<String, Place> places = new ConcurrentHashMap<>();

  Cluster(Configuration conf) {
    this.conf = conf;
  }

  /** A table, and where its regions are. */
  static final class Place {
    final AsyncTable<AdvancedScanResultConsumer> table;
    final AsyncTableRegionLocator locator;

    Place(AsyncConnection c, String name, long milliseconds) {
      TableName table = TableName.valueOf(name);
      // An attempt is one attempt: Records tries again, and counts.
      this.table =
          c.getTableBuilder(table)
              .setMaxAttempts(1)
              .setOperationTimeout(milliseconds, TimeUnit.MILLISECONDS)
              .setRpcTimeout(milliseconds, TimeUnit.MILLISECONDS)
              .setReadRpcTimeout(milliseconds, TimeUnit.MILLISECONDS)
              .setWriteRpcTimeout(milliseconds, TimeUnit.MILLISECONDS)
              .setScanTimeout(milliseconds, TimeUnit.MILLISECONDS)
              .build();
      this.locator = c.getRegionLocator(table);
    }
  }

  synchronized CompletableFuture<AsyncConnection> connect() {
    if (connection == null || connection.isCompletedExceptionally()) {
      connection = ConnectionFactory.createAsyncConnection(conf);
    }
    return connection;
  }

  @Override
  public synchronized void close() {
    if (connection != null) {
      connection.thenAccept(
          c -> {
            try {
              c.close();
            } catch (IOException e) {
              System.err.println(e); // it is closed as far as it can be
            }
          });
    }
  }

  Place place(AsyncConnection c, String table) {
    Place p = places.get(table);
    if (p == null) {
      p = places.computeIfAbsent(table, name -> new Place(c, name, conf.getLong("bridge.timeout", 10_000)));
    }
    return p;
  }
}
