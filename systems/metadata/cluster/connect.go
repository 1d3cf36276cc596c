package cluster

import (
	"context"
	"fmt"

	"skerry/systems/metadata/client"
)

// Client is a Router with connections: it asks the server that has a path itself.
type Client struct {
	*Router
	clients []*client.Client
}

// Connect learns from any server, whose address is given, which servers there are. A server
// that has its tree alone is asked for everything.
func Connect(ctx context.Context, addr string, with ...client.Option) (*Client, error) {
	first := client.New(addr, with...)
	status, err := first.Status(ctx)
	if err != nil {
		first.Close()
		return nil, fmt.Errorf("learning which servers share the tree: %w", err)
	}
	c := &Client{clients: []*client.Client{first}}
	s := Servers{Root: status.Root, Service: make(map[string]Service)}
	for name, addrs := range status.Servers {
		own := client.NewOwn(addrs, with...)
		c.clients = append(c.clients, own)
		s.Service[name] = own
	}
	if len(status.Servers) == 0 {
		s = Servers{Root: standaloneName, Service: map[string]Service{standaloneName: first}}
	}
	if c.Router, err = NewRouter(s); err != nil {
		c.Close()
		return nil, fmt.Errorf("learning which servers share the tree: %w", err)
	}
	return c, nil
}

// standaloneName is the name of a server that has none.
const standaloneName = "server"

// Close closes connections that nobody uses.
func (c *Client) Close() {
	for _, one := range c.clients {
		one.Close()
	}
}
