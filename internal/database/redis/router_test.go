package redis

import "testing"

// An answer that was asked for before a redirect does not undo it; one that was asked for after it does.
func TestRedirectOverridesOlderSlotMap(t *testing.T) {
	const left, heir = "10.0.0.1:6379", "10.0.0.2:6379"
	r := &router{stale: make(chan struct{}, 1)}
	r.nodes.Store(new([]string))
	owner := func(slot int) string { return (*r.nodes.Load())[r.owner[slot].Load()] }
	all := func(addr string) []ownedSlots { return []ownedSlots{{slotRange{0, slots - 1}, addr}} }
	asked := r.question.Add(1)
	if _, _, ok := r.followRedirect([]byte("MOVED 7 "+heir), left); !ok {
		t.Fatal("the redirect was not understood")
	}
	r.applySlotMap(all(left), asked)
	if owner(7) != heir || owner(8) != left {
		t.Errorf("after the older answer slot 7 is with %s, want %s; slot 8 with %s, want %s", owner(7), heir, owner(8), left)
	}
	r.applySlotMap(all(left), r.question.Add(1))
	if owner(7) != left {
		t.Errorf("after a newer answer slot 7 is with %s, want %s", owner(7), left)
	}
}
