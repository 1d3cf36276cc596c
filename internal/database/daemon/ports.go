package daemon

import "skerry/internal/host"

// PortsFree returns an error that wraps ErrPortTaken when something listens on one of the
// ports of a node's address. Start asks too; who empties a server's directory before it
// has to know earlier. Name is what the error calls the server.
func PortsFree(h host.Host, name string, ports ...int) error {
	return portsFree(h, Spec{Command: host.Command{Name: name}, Ports: ports})
}
