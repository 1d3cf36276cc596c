package lab

import (
	"fmt"
	"net/netip"
	"os"
)

// Resolve has what is started on the nodes from now on ask the DNS server at an address,
// port 53, for the names that are not those of nodes.
func (l *Lab) Resolve(server netip.Addr) error {
	text := fmt.Sprintf("nameserver %s\noptions timeout:1 attempts:3\n", server)
	if err := os.WriteFile(l.place.file(resolverFile), []byte(text), 0o644); err != nil {
		return fmt.Errorf("name the lab's DNS server: %w", err)
	}
	return nil
}
