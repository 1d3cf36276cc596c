package local

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"skerry/internal/machine"
	"skerry/internal/machine/statedir"
)

// Name implements machine.Nodes. The file is written in place: processes have it mounted.
func (p *part) Name(_ context.Context, names []machine.Named) error {
	var b strings.Builder
	b.WriteString("127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n")
	for _, n := range names {
		fmt.Fprintf(&b, "%s %s\n", n.Addr, n.Name)
	}
	if err := os.WriteFile(p.place.File(statedir.Hosts), []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("write names of nodes: %w", err)
	}
	return nil
}

// Resolve implements machine.Nodes.
func (p *part) Resolve(_ context.Context, server netip.Addr) error {
	text := fmt.Sprintf("nameserver %s\noptions timeout:1 attempts:3\n", server)
	if err := os.WriteFile(p.place.File(statedir.Resolver), []byte(text), 0o644); err != nil {
		return fmt.Errorf("name the lab's DNS server: %w", err)
	}
	return nil
}
