package bridge;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.channels.SocketChannel;
import javax.net.SocketFactory;
import org.apache.hadoop.conf.Configurable;
import org.apache.hadoop.conf.Configuration;

/**
 * Makes HDFS' connections from a node's own address. The NameNode knows a DataNode by
 * the address from which it connects; on a machine where nodes share a network
 * namespace, the system would choose the same one for all.
 */
public final class OwnAddress extends SocketFactory implements Configurable {
  private Configuration conf;

  @Override
  public Configuration getConf() {
    return conf;
  }

  @Override
  public void setConf(Configuration c) {
    conf = c;
  }

  @Override
  public Socket createSocket() throws IOException {
    Socket s = SocketChannel.open().socket();
    s.bind(new InetSocketAddress(conf.get("bridge.address"), 0));
    return s;
  }

  @Override
  public Socket createSocket(InetAddress host, int port) throws IOException {
    return connected(new InetSocketAddress(host, port));
  }

  @Override
  public Socket createSocket(InetAddress host, int port, InetAddress local, int localPort) throws IOException {
    return connected(new InetSocketAddress(host, port));
  }

  @Override
  public Socket createSocket(String host, int port) throws IOException {
    return connected(new InetSocketAddress(host, port));
  }

  @Override
  public Socket createSocket(String host, int port, InetAddress local, int localPort) throws IOException {
    return connected(new InetSocketAddress(host, port));
  }

  private Socket connected(InetSocketAddress to) throws IOException {
    Socket s = createSocket();
    s.connect(to);
    return s;
  }

  /** One factory a class: the cache of connections is keyed by it. */
  @Override
  public boolean equals(Object o) {
    return o instanceof OwnAddress;
  }

  @Override
  public int hashCode() {
    return OwnAddress.class.hashCode();
  }
}
