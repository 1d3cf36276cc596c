import java.net.InetSocketAddress;
import java.security.PrivilegedExceptionAction;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.NameNodeProxies;
import org.apache.hadoop.hdfs.protocol.ClientProtocol;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.hdfs.server.namenode.NameNode;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;
import org.apache.hadoop.security.UserGroupInformation;

/**
 * A NameNode without DataNodes, and a closed loop over its RPC client.
 *
 * <pre>
 * HdfsBench namenode DIR                                  prints "ready PORT", ends with its input
 * HdfsBench client PORT THREADS CONNECTIONS SECONDS       prints "mkdirs RATE", "listing RATE"
 * </pre>
 */
public final class HdfsBench {
  private static final FsPermission MODE = FsPermission.createImmutable((short) 0755);

  /** What one thread does as its i-th operation. */
  private interface Operation {
    void run(ClientProtocol nn, int thread, int i) throws Exception;
  }

  public static void main(String[] args) throws Exception {
    if (args[0].equals("namenode")) {
      namenode(args[1]);
    } else {
      client(Integer.parseInt(args[1]), Integer.parseInt(args[2]), Integer.parseInt(args[3]), Double.parseDouble(args[4]));
    }
  }

  private static void namenode(String dir) throws Exception {
    Configuration conf = new HdfsConfiguration();
    conf.set("fs.defaultFS", "hdfs://127.0.0.1:0");
    conf.set("dfs.namenode.rpc-address", "127.0.0.1:0");
    conf.set("dfs.namenode.http-address", "127.0.0.1:0");
    conf.set("dfs.namenode.name.dir", "file://" + dir);
    conf.set("dfs.permissions.enabled", "false");
    conf.set("dfs.namenode.handler.count", "64");
    DefaultMetricsSystem.setMiniClusterMode(true); // two NameNodes in a process: format is one
    NameNode.format(conf);
    NameNode nn = NameNode.createNameNode(new String[0], conf);
    System.out.println("ready " + nn.getNameNodeAddress().getPort());
    System.out.flush();
    while (System.in.read() >= 0) {
      // Until whoever started it ends.
    }
    Runtime.getRuntime().halt(0);
  }

  private static void client(int port, int threads, int connections, double seconds) throws Exception {
    Configuration conf = new HdfsConfiguration();
    ClientProtocol[] nodes = new ClientProtocol[connections];
    for (int i = 0; i < connections; i++) {
      // A connection is shared by all that a user asks: another user, another connection.
      UserGroupInformation user = UserGroupInformation.createRemoteUser("user" + i);
      nodes[i] = user.doAs((PrivilegedExceptionAction<ClientProtocol>) () ->
          NameNodeProxies.createNonHAProxy(conf, new InetSocketAddress("127.0.0.1", port), ClientProtocol.class, user, true).getProxy());
    }
    for (int i = 0; i < 10; i++) {
      nodes[0].mkdirs("/listed/" + i, MODE, true);
    }
    Operation mkdirs = (nn, t, i) -> nn.mkdirs("/m" + connections + "/" + t + "/" + i, MODE, true);
    Operation listing = (nn, t, i) -> nn.getListing("/listed", HdfsFileStatus.EMPTY_NAME, false);
    loop(nodes, threads, seconds / 2, listing); // until the code is compiled
    System.out.println("listing " + loop(nodes, threads, seconds, listing));
    Operation warm = (nn, t, i) -> nn.mkdirs("/w" + connections + "/" + t + "/" + i, MODE, true);
    loop(nodes, threads, seconds / 2, warm);
    System.out.println("mkdirs " + loop(nodes, threads, seconds, mkdirs));
    System.out.flush();
    Runtime.getRuntime().halt(0);
  }

  /** Operations per second of threads that ask one after the other. */
  private static double loop(ClientProtocol[] nodes, int threads, double seconds, Operation op) throws Exception {
    AtomicLong done = new AtomicLong();
    AtomicReference<Exception> failure = new AtomicReference<>();
    CountDownLatch ended = new CountDownLatch(threads);
    long start = System.nanoTime();
    long end = start + (long) (seconds * 1e9);
    for (int t = 0; t < threads; t++) {
      final int thread = t;
      new Thread(() -> {
        int i = 0;
        try {
          for (; System.nanoTime() < end; i++) {
            op.run(nodes[thread % nodes.length], thread, i);
          }
        } catch (Exception e) {
          failure.set(e);
        }
        done.addAndGet(i);
        ended.countDown();
      }).start();
    }
    ended.await();
    if (failure.get() != null) {
      throw failure.get();
    }
    return done.get() / ((System.nanoTime() - start) / 1e9);
  }
}
