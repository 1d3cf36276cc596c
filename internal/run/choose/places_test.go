package choose

import "testing"

// All clients together keep within what a database takes of connections by default.
func TestConnectionsOfAChoice(t *testing.T) {
	for _, tt := range []struct{ clients, threads, want int }{{0, 32, 256}, {1, 32, 256}, {2, 32, 128}, {4, 32, 64}, {1, 100, 400}} {
		n := Needs{Client: make([]string, tt.clients)}
		if got := n.inFlight(tt.threads / max(1, tt.clients)); got != tt.want {
			t.Errorf("%d clients, %d threads: %d requests under way at each, want %d", tt.clients, tt.threads, got, tt.want)
		}
	}
}
