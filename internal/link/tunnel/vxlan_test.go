package tunnel

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"skerry/test/testkit"
)

// A plain network between machines accepts packets with its key, and no others.
func TestVXLANDropsOutsiders(t *testing.T) {
	testkit.Need(t, testkit.Root)
	const network, port, inside = 0x123456, 4700, 7
	sides := []*testkit.NS{testkit.Namespace(t), testkit.Namespace(t)} // the machines' own
	testkit.VethPair(t, sides[0], sides[1])
	ends, addrs := make([]VXLAN, 2), make([]netip.Addr, 2)
	spaces := []*testkit.NS{testkit.Namespace(t), testkit.Namespace(t)}
	for i := range ends {
		addrs[i] = netip.AddrFrom4([4]byte{10, 79, 0, byte(i + 1)})
		ends[i] = VXLAN{Netns: spaces[i].Path(), Device: "between", Network: network, Port: port + i, HardwareAddr: NewHardwareAddr()}
	}
	for i := range ends {
		at := netip.AddrPortFrom(netip.MustParseAddr(sides[1-i].Addr()), uint16(port+1-i))
		ends[i].Peers = []VXLANPeer{{HardwareAddr: ends[1-i].HardwareAddr, At: at, Addr: addrs[1-i]}}
		if err := sides[i].Do(ends[i].Start); err != nil {
			t.Fatal(err)
		}
		spaces[i].Assign(t, "between", addrs[i].String()+"/16")
	}
	var receiver, friend net.PacketConn
	listen := func(at *testkit.NS, addr netip.Addr) (c net.PacketConn) {
		t.Helper()
		if err := at.Do(func() (err error) {
			c, err = net.ListenPacket("udp4", netip.AddrPortFrom(addr, inside).String())
			return err
		}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	receiver, friend = listen(spaces[1], addrs[1]), listen(spaces[0], addrs[0])
	got := func(within time.Duration) (string, bool) {
		t.Helper()
		if err := receiver.SetReadDeadline(time.Now().Add(within)); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 100)
		n, _, err := receiver.ReadFrom(b)
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
		return string(b[:n]), err == nil
	}
	if _, err := friend.WriteTo([]byte("friend"), net.UDPAddrFromAddrPort(netip.AddrPortFrom(addrs[1], inside))); err != nil {
		t.Fatal(err)
	}
	if text, ok := got(time.Minute); !ok || text != "friend" {
		t.Fatalf("got %q (%t) from the other machine", text, ok)
	}
	var stranger net.Conn
	if err := sides[0].Do(func() (err error) {
		stranger, err = net.Dial("udp4", netip.AddrPortFrom(netip.MustParseAddr(sides[1].Addr()), port+1).String())
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	send := func(network int, to net.HardwareAddr, text string) {
		t.Helper()
		if _, err := stranger.Write(frame(network, to, addrs[0], addrs[1], inside, text)); err != nil {
			t.Fatal(err)
		}
	}
	key := ends[1].HardwareAddr
	all := net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	send(network+1, key, "another network")
	send(network, NewHardwareAddr(), "another end")
	send(network, all, "everybody")
	send(network, net.HardwareAddr{1, 0, 0x5e, 0, 0, 1}, "a group")
	send(network, key, "the key") // packets stay in order: earlier packets that did not arrive were dropped
	if text, ok := got(time.Minute); !ok || text != "the key" {
		t.Errorf("got %q (%t), want only the packet with the key", text, ok)
	}
}

// frame is a UDP packet as it crosses to a plain network.
func frame(network int, to net.HardwareAddr, from, dst netip.Addr, port uint16, text string) []byte {
	b := []byte{8, 0, 0, 0}
	b = binary.BigEndian.AppendUint32(b, uint32(network)<<8)
	b = append(append(append(b, to...), 2, 0, 0, 0, 0, 9), 8, 0)
	ip := []byte{0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0}
	binary.BigEndian.PutUint16(ip[2:], uint16(20+8+len(text)))
	ip = append(append(ip, from.AsSlice()...), dst.AsSlice()...)
	sum := uint32(0)
	for i := 0; i < len(ip); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(ip[i:]))
	}
	sum = sum>>16 + sum&0xffff
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum+sum>>16))
	b = append(b, ip...)
	b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, port), port)
	b = binary.BigEndian.AppendUint16(b, uint16(8+len(text)))
	return append(append(b, 0, 0), text...) // without a checksum, as IPv4 allows
}
