package external_test

import (
	"strings"
	"testing"

	"skerry/internal/database/external"
	"skerry/internal/database/redis"
)

// TestTableIsNotTheUsers: a property that names the table could name keys of the user, which a trial would drop.
func TestTableIsNotTheUsers(t *testing.T) {
	for name, refused := range map[string]bool{"redis.prefix": true, "table": true, "redis.user": false} {
		s := external.Spec{Servers: []string{"10.0.0.1:6379"}, Properties: map[string]string{name: "user"}}
		d, err := external.New(redis.New(), s, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Check(0, nil); (err != nil) != refused || refused && !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
