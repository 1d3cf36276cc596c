package consensus_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skerry/systems/consensus"
)

// authority is a certificate authority for tests.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key}
}

// config returns the TLS configuration of a member that trusts trust and has a certificate signed by a.
func (a *authority) config(t *testing.T, trust *authority) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(trust.cert)
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		RootCAs:      pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	}
}

// secure makes a member use one TLS configuration as server and as client.
func secure(cfg *consensus.Config, both *tls.Config) {
	cfg.TLS, cfg.DialTLS = both, func() *tls.Config { return both }
}

func TestTLS(t *testing.T) {
	ca := newAuthority(t)
	g := newGroup(t, three, func(cfg *consensus.Config) { secure(cfg, ca.config(t, ca)) })
	g.propose(g.leader(), 0, 50)
	g.same(50)
}

func TestWrongAuthority(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	g := newGroup(t, three, func(cfg *consensus.Config) {
		secure(cfg, ca.config(t, ca))
		if cfg.Self.ID == 3 {
			secure(cfg, other.config(t, ca))
		}
	})
	g.propose(g.members[0], 0, 10)
	g.awaitStatus(g.members[0], "refusing member 3", func(s consensus.Status) bool {
		return !s.Members[2].Connected && strings.Contains(s.Members[2].Error, "certificate")
	})
	g.awaitStatus(g.members[2], "refused", func(s consensus.Status) bool {
		return s.Commit == 1 && !s.Members[0].Connected && strings.Contains(s.Members[0].Error, "certificate")
	})
}

func TestWrongCluster(t *testing.T) {
	g := newGroup(t, three, func(cfg *consensus.Config) {
		if cfg.Self.ID == 3 {
			cfg.Cluster = "other"
		}
	})
	g.propose(g.members[0], 0, 10)
	g.awaitStatus(g.members[0], "refused by member 3", func(s consensus.Status) bool {
		return strings.Contains(s.Members[2].Error, `member 3 is of cluster "other", not "test"`)
	})
	if s := g.members[2].node.Status(); s.Commit != 1 {
		t.Errorf("a member of another cluster joined: %+v", s)
	}
}

func TestWrongDirectory(t *testing.T) {
	g := newGroup(t, three[:1], nil)
	m := g.members[0]
	if _, err := consensus.Open(soon(t), m.cfg); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("opening a directory in use: %v", err)
	}
	m.close()
	cfg := m.cfg
	cfg.Cluster = "other"
	if _, err := consensus.Open(soon(t), cfg); !errors.Is(err, consensus.ErrCluster) {
		t.Errorf("opening another cluster's directory: %v", err)
	}
}

// TestGarbage sends a member bytes that are neither a handshake nor a frame.
func TestGarbage(t *testing.T) {
	g := newGroup(t, three[:1], nil)
	m := g.members[0]
	for _, b := range []string{"", "GET / HTTP/1.1\r\n\r\n", "\xff\xff\xff\xff", "\x02\x00\x00\x00{}", "\x05\x00\x00\x00hello"} {
		conn, err := net.Dial("tcp", m.cfg.Self.Addr)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, b)
		conn.Close()
	}
	g.propose(m, 0, 5)
	g.same(5)
}

func TestBadConfig(t *testing.T) {
	self := consensus.Member{ID: 1, Addr: "127.0.0.1:0", Role: consensus.Voter}
	good := consensus.Config{Cluster: "c", Self: self, Members: []consensus.Member{self}}
	for name, edit := range map[string]func(*consensus.Config){
		"no cluster":       func(c *consensus.Config) { c.Cluster = "" },
		"no directory":     func(c *consensus.Config) { c.Dir = "" },
		"no identifier":    func(c *consensus.Config) { c.Self.ID = 0 },
		"no role":          func(c *consensus.Config) { c.Self.Role = "" },
		"not a member":     func(c *consensus.Config) { c.Self.ID = 2 },
		"two roles":        func(c *consensus.Config) { c.Self.Role = consensus.Witness },
		"small log":        func(c *consensus.Config) { c.MaxLog = 1000 },
		"duplicate member": func(c *consensus.Config) { c.Members = append(c.Members, self) },
		"no voter":         func(c *consensus.Config) { c.Self.Role = consensus.Learner; c.Members = []consensus.Member{c.Self} },
		"address in use?":  func(c *consensus.Config) { c.Self.Addr = "127.0.0.1:99999" },
	} {
		cfg := good
		cfg.Dir = filepath.Join(t.TempDir(), "log")
		cfg.Members = append([]consensus.Member(nil), good.Members...)
		edit(&cfg)
		if n, err := consensus.Open(soon(t), cfg); err == nil {
			t.Errorf("%s: the configuration was accepted", name)
			n.Close()
		}
	}
}
