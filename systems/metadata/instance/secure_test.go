package instance_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/base/bearer"
	"skerry/systems/consensus/ca"
	"skerry/systems/metadata/client"
	"skerry/systems/metadata/instance"
	"skerry/systems/metadata/protocol"
	"skerry/test/testkit"
)

// authority creates tokens and certificates of the cluster "tree" for members at the given addresses and at
// 127.0.0.1, and returns their directory.
func authority(t *testing.T, members map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "pki")
	a, err := ca.Init(dir, "tree", 30, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	errs := []error{ca.WriteTokens(dir)}
	for name, peer := range members {
		host, _, _ := net.SplitHostPort(peer)
		errs = append(errs, a.Issue(ca.Subject{Name: name, Role: ca.Member, Hosts: []string{"127.0.0.1", host}}, 30, time.Now()))
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return dir
}

func security(pki, name string) instance.Security {
	at := func(file string) string { return filepath.Join(pki, file) }
	return instance.Security{Certificate: at(name + ".crt"), Key: at(name + ".key"), Authority: at("ca.crt"), TLS: true,
		Tokens: at(ca.TokensFile)}
}

// TestExposedAddressNeedsTokens refuses addresses that other machines reach, unless clients are authenticated or
// --insecure is given.
func TestExposedAddressNeedsTokens(t *testing.T) {
	pki := authority(t, map[string]string{"m1": "127.0.0.1:0"})
	whole := security(pki, "m1")
	stop := errors.New("the server started")
	for name, c := range map[string]struct {
		listen, peer string
		security     instance.Security
		refused      bool
	}{
		"loopback":                   {"127.0.0.1:0", "127.0.0.1:0", instance.Security{}, false},
		"everywhere":                 {"0.0.0.0:0", "", instance.Security{}, true},
		"all interfaces, no host":    {":0", "", instance.Security{}, true},
		"all interfaces with tokens": {"0.0.0.0:0", "", instance.Security{Tokens: whole.Tokens}, false},
		"all interfaces with TLS only": {"0.0.0.0:0", "", instance.Security{Certificate: whole.Certificate, Key: whole.Key,
			Authority: whole.Authority, TLS: true}, true},
		"all interfaces with tokens and TLS": {"0.0.0.0:0", "", whole, false},
		"all interfaces with --insecure":     {"0.0.0.0:0", "0.0.0.0:0", instance.Security{Insecure: true}, false},
		"replicas without certificates":      {"127.0.0.1:0", "0.0.0.0:0", instance.Security{Tokens: whole.Tokens}, true},
		"replicas with certificates":         {"127.0.0.1:0", "0.0.0.0:0", whole, false},
		"TLS needs a certificate":            {"127.0.0.1:0", "", instance.Security{TLS: true}, true},
	} {
		o := instance.Options{Listen: c.listen, Dir: t.TempDir(), Security: c.security}
		if c.peer != "" {
			o.Group = &instance.ReplicaGroup{Cluster: "tree", Name: "m1", Members: []string{"m1=" + c.peer}}
		}
		err := serveOnce(t, o, stop)
		if errors.Is(err, stop) == c.refused || c.refused && advice.Of(err) == "" {
			t.Errorf("%s: %v (%s)", name, err, advice.Of(err))
		}
		if c.refused && strings.HasPrefix(name, "everywhere") && !errors.Is(err, bearer.ErrExposed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOnlyAdministratorsAddReplicas adds a replica to a group with https clients. It needs an administrator's
// token, and a certificate of the cluster for the replica's name and address.
func TestOnlyAdministratorsAddReplicas(t *testing.T) {
	peers := []string{testkit.Address(t), testkit.Address(t), testkit.Address(t)}
	pki, other := authority(t, map[string]string{"m1": peers[0], "m2": peers[1], "m3": peers[2]}),
		authority(t, map[string]string{"m2": peers[1]})
	start := func(pki, name, peer string, join bool) string {
		addr, _ := begin(t, instance.Options{
			Dir: filepath.Join(t.TempDir(), name), Security: security(pki, name),
			Group: &instance.ReplicaGroup{Cluster: "tree", Name: name, Members: []string{name + "=" + peer}, Join: join},
		})
		return addr
	}
	addr := start(pki, "m1", peers[0], false)
	start(other, "m2", peers[1], true) // same cluster name, another authority
	trust, err := ca.Trust(filepath.Join(pki, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	as := func(scope string) *client.Client {
		token := ""
		if scope != "" {
			line, err := os.ReadFile(filepath.Join(pki, "token-"+scope))
			if err != nil {
				t.Fatal(err)
			}
			token = strings.Fields(string(line))[1]
		}
		c := client.New(addr, client.TLS(trust), client.Token(token))
		t.Cleanup(c.Close)
		return c
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if r := one(t, as("write"), "mkdir /a"); r.Err != nil {
		t.Fatal(r.Err)
	}
	for _, scope := range []string{"", "read", "write"} {
		if err := as(scope).AddMember(ctx, "m2", peers[1]); !errors.Is(err, client.ErrToken) {
			t.Errorf("adding a replica with scope %q: %v", scope, err)
		}
		if err := as(scope).RemoveMember(ctx, "m1"); !errors.Is(err, client.ErrToken) {
			t.Errorf("removing a replica with scope %q: %v", scope, err)
		}
	}
	admin := as("admin")
	for why, at := range map[string]string{"another authority's": peers[1], "a certificate for another name": peers[0], "no replica": testkit.Address(t)} {
		if err := admin.AddMember(ctx, "m2", at); !errors.Is(err, client.ErrRefused) {
			t.Errorf("%s: %v", why, err)
		}
	}
	start(pki, "m3", peers[2], true)
	if err := admin.AddMember(ctx, "m3", peers[2]); err != nil {
		t.Fatal(err)
	}
	if err := admin.AwaitVote(ctx, "m3"); err != nil {
		t.Fatal(err)
	}
	plain := client.New(addr)
	defer plain.Close()
	if _, err := plain.Status(ctx); err == nil {
		t.Error("a client without TLS got a response")
	}
}

// serveOnce serves until the server is ready, and then stops it with the error stop.
func serveOnce(t *testing.T, o instance.Options, stop error) error {
	t.Helper()
	o.Log = slog.New(slog.DiscardHandler)
	o.Ready = func(net.Addr, protocol.LogRecovery) error { return stop }
	return instance.Run(t.Context(), o)
}
