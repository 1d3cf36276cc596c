package tunnel

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"skerry/test/testkit"
)

// written calls a function with each write.
type written func(string)

func (w written) Write(b []byte) (int, error) {
	w(string(b))
	return len(b), nil
}

// An end of a mesh whose port is in use waits for that port and does not choose another one, because the other machines
// send there.
func TestMeshKeepsItsPort(t *testing.T) {
	testkit.Need(t, testkit.Root, testkit.TUN)
	const port = 4711
	key, err := wgtypes.GeneratePrivateKey()
	if err != nil {
		t.Fatal(err)
	}
	peer, err := wgtypes.GeneratePrivateKey()
	if err != nil {
		t.Fatal(err)
	}
	m := Mesh{
		Netns: testkit.Namespace(t).Path(), Device: "between", Key: key, Port: port,
		Peers: []MeshPeer{{Key: peer.PublicKey(), At: netip.MustParseAddrPort("127.0.0.1:4712"), Addr: netip.MustParseAddr("10.79.0.2")}},
	}
	err = testkit.Namespace(t).Do(func() error {
		holder, err := net.ListenUDP("udp", &net.UDPAddr{Port: port})
		if err != nil {
			return err
		}
		defer holder.Close()
		refused := 0
		log := slog.New(slog.NewTextHandler(written(func(line string) {
			if strings.Contains(line, "address already in use") {
				refused++
				holder.Close()
			}
		}), &slog.HandlerOptions{Level: slog.LevelDebug}))
		e, err := m.open(log)
		if err != nil {
			return err
		}
		defer e.Close()
		state, err := e.IpcGet()
		if err != nil {
			return err
		}
		if want := fmt.Sprintf("listen_port=%d\n", port); refused == 0 || !strings.Contains(state, want) {
			t.Errorf("refused %d times, then started with\n%swant %s", refused, state, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
