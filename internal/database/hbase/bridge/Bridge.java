package bridge;

import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;

/**
 * Carries operations from a program that is not written in Java to HBase's own client.
 *
 * <pre>
 *   standard input   requests ─► Records ────────► HBase's asynchronous client
 *                            └─► Administration ─► master, NameNode
 *   standard output ◄─ replies, in the order in which they are done
 * </pre>
 *
 * Many requests are outstanding at a time; none waits for another, and no thread waits
 * for a server. The process ends with its standard input. Arguments are settings of
 * HBase, NAME=VALUE, and those whose names begin with "bridge.". Frames are described
 * in Request and Reply.
 *
 * <p>With bridge.listen=ADDRESS:PORT it also takes connections there, each of which is served
 * as standard input and output are, and has connections to HBase of its own: what TCP has
 * learned of the distance of servers while another one was served may hold no more.
 */
public final class Bridge {
  private static final int MAX_FRAME = 1 << 30;

  public static void main(String[] args) throws Exception {
    Configuration conf = HBaseConfiguration.create();
    for (String a : args) {
      int at = a.indexOf('=');
      conf.set(a.substring(0, at), a.substring(at + 1));
    }
    Runnable end = () -> Runtime.getRuntime().halt(0); // what is outstanding is nobody's
    Output out = new Output(new FileOutputStream(FileDescriptor.out), end);
    System.setOut(System.err); // what a library prints is no frame
    Cluster cluster = new Cluster(conf);
    if (conf.get("bridge.listen") != null) {
      listen(conf);
    }
    try (InputStream in = new FileInputStream(FileDescriptor.in)) {
      serve(in, out, cluster);
    }
    end.run();
  }

  private static void listen(Configuration conf) throws IOException {
    String address = conf.get("bridge.listen");
    int colon = address.lastIndexOf(':');
    ServerSocket door = new ServerSocket();
    door.bind(new InetSocketAddress(address.substring(0, colon), Integer.parseInt(address.substring(colon + 1))));
    daemon(
        () -> {
          while (true) {
            Socket guest = door.accept();
            daemon(() -> host(guest, conf));
          }
        });
  }

  private static void host(Socket guest, Configuration conf) throws Exception {
    try (guest;
        Cluster cluster = new Cluster(conf)) {
      guest.setTcpNoDelay(true);
      serve(guest.getInputStream(), new Output(guest.getOutputStream(), () -> {}), cluster);
    }
  }

  private interface Work {
    void run() throws Exception;
  }

  /** A thread that may fail by itself: what it served is lost, others go on. */
  private static void daemon(Work work) {
    Thread t =
        new Thread(
            () -> {
              try {
                work.run();
              } catch (Exception e) {
                System.err.println(e);
              }
            });
    t.setDaemon(true);
    t.start();
  }

  private static void serve(InputStream in, Output out, Cluster cluster) throws Exception {
    Records records = new Records(cluster, out);
    Administration administration = new Administration(cluster, out);
    byte[] buffer = new byte[1 << 16];
    int from = 0;
    int to = 0;
    while (true) {
      while (to - from >= 4) {
        int size = ByteBuffer.wrap(buffer, from, 4).getInt();
        if (size < Request.HEADER || size > MAX_FRAME) {
          throw new IllegalStateException("a frame of " + size + " bytes");
        }
        if (to - from - 4 < size) {
          break;
        }
        Request request = new Request(ByteBuffer.wrap(buffer, from + 4, size));
        if (request.operation == Request.ADMINISTER) {
          administration.start(request);
        } else {
          records.start(request);
        }
        from += 4 + size;
      }
      int need = to - from >= 4 ? 4 + ByteBuffer.wrap(buffer, from, 4).getInt() : 4;
      byte[] into = need > buffer.length ? new byte[Integer.highestOneBit(need) * 2] : buffer;
      System.arraycopy(buffer, from, into, 0, to - from);
      buffer = into;
      to -= from;
      from = 0;
      int n = in.read(buffer, to, buffer.length - to);
      if (n < 0) {
        return;
      }
      to += n;
    }
  }

  private Bridge() {}
}
