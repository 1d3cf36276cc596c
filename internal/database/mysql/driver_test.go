package mysql

import (
	"context"
	"errors"
	"net"
	"testing"

	"skerry/internal/machine/host"
)

// node is an unreachable host.
type node struct {
	host.Host
	asked string
}

var errUnreached = errors.New("unreachable")

func (*node) Name() string  { return "Oslo" }
func (*node) Addr() string  { return "10.77.0.1" }
func (n *node) Dir() string { return "" }
func (n *node) Dial(_ context.Context, _, addr string) (net.Conn, error) {
	n.asked = addr
	return nil, errUnreached
}

// The copy of a member is read from its own host, because an auditor of a lab cannot reach its address.
func TestCopiesAreAskedFromTheirHost(t *testing.T) {
	n := new(node)
	s, err := NewServer(n, "galera", Port)
	if err != nil {
		t.Fatal(err)
	}
	d := &Driver{Kind: "galera", Dial: func(context.Context, string, string) (net.Conn, error) {
		t.Error("the member was contacted from the clients' node")
		return nil, errUnreached
	}}
	if _, err := d.OpenMember(t.Context(), s, ""); err == nil || n.asked != "10.77.0.1:3306" {
		t.Errorf("contacted %q, error %v", n.asked, err)
	}
}
