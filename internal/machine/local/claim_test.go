package local

import "testing"

// A port of a listener stays reserved until the claim is released.
func TestClaimedPortsAreKept(t *testing.T) {
	first, err := claimPort()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.open(); err != nil {
		t.Fatal(err)
	}
	second, err := claimPort()
	if err != nil {
		t.Fatal(err)
	}
	if second.port == first.port {
		t.Errorf("two labs have port %d", first.port)
	}
	for _, c := range []*portClaim{first, second} {
		if err := c.close(); err != nil {
			t.Error(err)
		}
	}
}
