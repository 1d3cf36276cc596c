package tinc

import (
	"crypto/rand"
	"crypto/rsa"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/base/unit"
	"skerry/internal/lab/overlay"
	"skerry/internal/machine/files"
)

// three nodes with two links between the first and the last, and one between the others.
func three() []overlay.Link {
	at := func(last byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 80, 0, last}) }
	const ms = time.Millisecond
	return []overlay.Link{
		{ID: "a", A: "vm0", B: "vm2", Latency: 105 * ms, AddrA: at(0), AddrB: at(1)},
		{ID: "b", A: "vm0", B: "vm2", Latency: 70 * ms, AddrA: at(2), AddrB: at(3)},
		{ID: "d", A: "vm1", B: "vm2", Latency: 25 * ms, AddrA: at(4), AddrB: at(5)},
	}
}

func TestAddresses(t *testing.T) {
	for _, tt := range []struct {
		node, peer string
		want       []string
	}{
		{"vm2", "vm0", []string{"10.80.0.2", "10.80.0.0"}}, // the shortest link first
		{"vm0", "vm2", []string{"10.80.0.3", "10.80.0.1"}},
		{"vm2", "vm1", []string{"10.80.0.4"}},
		{"vm0", "vm1", nil},
	} {
		if diff := cmp.Diff(tt.want, peerAddresses(tt.node, tt.peer, three())); diff != "" {
			t.Errorf("configuration of peer %[2]s at %[1]s:\n%[3]s", tt.node, tt.peer, diff)
		}
	}
}

func TestWrite(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		t.Fatal(err)
	}
	var peers []peer
	for i, n := range []string{"vm0", "vm1", "vm2"} {
		peers = append(peers, peer{name: "n" + string(rune('0'+i)), node: n, addr: "10.77.0." + string(rune('1'+i)), key: key})
	}
	dir := t.TempDir()
	o := Options{PingInterval: unit.Duration(5 * time.Second), PingTimeout: unit.Duration(2 * time.Second)}
	if err := writeConfig(t.Context(), files.Local{}, dir, 2, peers, three(), o); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for _, line := range []string{"Name = n2", "ConnectTo = n0", "ConnectTo = n1", "PingInterval = 5", "PingTimeout = 2"} {
		if !strings.Contains(read("tinc.conf"), line+"\n") {
			t.Errorf("tinc.conf lacks %q:\n%s", line, read("tinc.conf"))
		}
	}
	if got := read("hosts/n0"); !strings.HasPrefix(got, "Address = 10.80.0.2\nAddress = 10.80.0.0\nSubnet = 10.77.0.1/32\n") {
		t.Errorf("hosts/n0:\n%s", got)
	}
	info, err := os.Stat(filepath.Join(dir, "rsa_key.priv"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the private key has the mode %v, %v", info.Mode(), err)
	}
	// The earlier node connects to no peer: two nodes that connect to each other close each other's connections.
	first := t.TempDir()
	if err := writeConfig(t.Context(), files.Local{}, first, 0, peers, three(), o); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(first, "tinc.conf")); err != nil || strings.Contains(string(data), "ConnectTo") {
		t.Errorf("the first node connects to a peer: %s, %v", data, err)
	}
}
