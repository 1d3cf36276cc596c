package testkit

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Address is an address of loopback for a server that starts there later, or again and
// again. Nothing listens at it, and no other process gets it meanwhile: its port is below those that the
// kernel chooses from. With one of the kernel's it would go like this.
//
//  1. A test is given 127.7.7.7:40000 and lets go of it, so that its server can have it.
//  2. Another test listens at 0.0.0.0:0. The kernel chooses 40000, which is free.
//  3. The server cannot listen: who has a port everywhere has it at 127.7.7.7, too.
func Address(t testing.TB) string {
	t.Helper()
	var err error
	for range 10 {
		var l net.Listener
		l, err = net.Listen("tcp", fmt.Sprintf("127.%d.%d.%d:%d", 1+rand.N(250), 1+rand.N(250), 1+rand.N(250), 20000+rand.N(10000)))
		if err != nil {
			continue
		}
		defer l.Close()
		return l.Addr().String()
	}
	t.Fatalf("finding an address to listen at: %v", err)
	return ""
}
