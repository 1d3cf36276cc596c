package tinc

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"skerry/internal/base/strict"
	"skerry/internal/base/unit"
	"skerry/internal/install"
	"skerry/internal/lab/overlay"
	"skerry/internal/machine/files"
)

// peer is a node of tinc's mesh.
type peer struct {
	name string // tinc allows letters, digits and underscores
	node string
	addr string // on the overlay
	key  *rsa.PrivateKey
}

// formatMainConfig is tinc.conf of a node that calls the named neighbours.
func formatMainConfig(self peer, neighbours []string, o Options) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Name = %s\nMode = router\nDeviceType = tun\nDevice = /dev/net/tun\nInterface = %s\nAddressFamily = ipv4\n", self.name,
		device)
	fmt.Fprintf(&b, "PingInterval = %d\nPingTimeout = %d\n", time.Duration(o.PingInterval)/time.Second,
		time.Duration(o.PingTimeout)/time.Second)
	for _, n := range neighbours {
		fmt.Fprintf(&b, "ConnectTo = %s\n", n)
	}
	return b.String()
}

// formatHostConfig is the file hosts/NAME of a peer. Tinc tries the addresses in order.
func formatHostConfig(p peer, addresses []string) string {
	var b strings.Builder
	for _, a := range addresses {
		fmt.Fprintf(&b, "Address = %s\n", a)
	}
	fmt.Fprintf(&b, "Subnet = %s/32\nCipher = aes-256-cbc\nDigest = sha256\n", p.addr)
	b.Write(pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(&p.key.PublicKey)}))
	return b.String()
}

// peerAddresses are the addresses of a peer over its links to a node, shortest first.
func peerAddresses(node, peer string, links []overlay.Link) []string {
	links = slices.Clone(links)
	slices.SortStableFunc(links, func(x, y overlay.Link) int { return cmp.Compare(x.Latency, y.Latency) })
	var all []string
	for _, l := range links {
		switch {
		case l.A == node && l.B == peer:
			all = append(all, l.AddrB.String())
		case l.B == node && l.A == peer:
			all = append(all, l.AddrA.String())
		}
	}
	return all
}

// writeConfig writes the configuration of the i-th node into dir. A node calls only the neighbours before it: two nodes
// that called each other at the same time would repeatedly close each other's connection.
func writeConfig(ctx context.Context, on files.System, dir string, i int, peers []peer, links []overlay.Link, o Options) error {
	self := peers[i]
	if err := on.MakeDir(ctx, filepath.Join(dir, "hosts")); err != nil {
		return err
	}
	var neighbours []string
	for j, p := range peers {
		known := peerAddresses(self.node, p.node, links)
		if len(known) > 0 && j < i {
			neighbours = append(neighbours, p.name)
		}
		if err := files.WriteText(ctx, on, filepath.Join(dir, "hosts", p.name), formatHostConfig(p, known)); err != nil {
			return err
		}
	}
	slices.Sort(neighbours)
	if err := files.WriteText(ctx, on, filepath.Join(dir, "tinc.conf"), formatMainConfig(self, neighbours, o)); err != nil {
		return err
	}
	key := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(self.key)})
	return on.Write(ctx, filepath.Join(dir, "rsa_key.priv"), 0o600, bytes.NewReader(key))
}

// Options tune tincd, which counts in whole seconds. The defaults are tincd's.
type Options struct {
	// PingInterval is the time without traffic after which a connection is pinged.
	PingInterval unit.Duration `yaml:"ping_interval" jsonschema:"default=60s"`
	// PingTimeout is the time for an answer, and for a connection attempt.
	PingTimeout unit.Duration `yaml:"ping_timeout" jsonschema:"default=5s"`
}

var _ overlay.Options = (*Options)(nil)

func (o *Options) Check() (ps strict.Problems) {
	for _, i := range []struct {
		key string
		d   unit.Duration
	}{{"ping_interval", o.PingInterval}, {"ping_timeout", o.PingTimeout}} {
		if i.d <= 0 || time.Duration(i.d)%time.Second != 0 {
			ps = append(ps, strict.Problem{Path: i.key, Message: "tinc counts in whole seconds", Hint: "give 1s, 2s ..."})
		}
	}
	return ps
}

func (o *Options) New(in install.Installation) overlay.Overlay {
	return &Tinc{program: in.Programs["tincd"], env: in.Env, options: *o}
}
