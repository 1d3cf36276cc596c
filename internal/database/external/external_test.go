package external_test

import (
	"strings"
	"testing"

	"skerry/internal/database"
	"skerry/internal/database/external"
	"skerry/internal/database/hbase"
	"skerry/internal/database/redis"
)

func TestRefusePassword(t *testing.T) {
	for property, refused := range map[string]bool{
		"redis.password=x": true, "mongodb.url=mongodb://u:p@a:1/db": true, "mongodb.url=mongodb://a/?tlsCertificateKeyFilePassword=x": true,
		"mongodb.url=mongodb://a:1/db?replicaSet=rs0": false, "redis.timeout=500": false, "redis.user=skerry": false,
	} {
		name, value, _ := strings.Cut(property, "=")
		if err := external.RefusePassword(name, value); (err != nil) != refused {
			t.Errorf("%s: %v", property, err)
		}
	}
}

func TestLoginIsRefusedWithoutUsers(t *testing.T) {
	s := external.ClusterSpec{Servers: []string{"10.0.0.1:2181"}, Access: database.Access{User: "skerry"}}
	d, err := external.New(hbase.New(), s, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := d.CheckAccess()[""]; err == nil || !strings.Contains(err.Error(), "hbase do not log in") {
		t.Errorf("%v", err)
	}
}

// TestTableIsNotTheUsers: a property that names the table could name keys of the user, which a trial would drop.
func TestTableIsNotTheUsers(t *testing.T) {
	for name, refused := range map[string]bool{"redis.prefix": true, "table": true, "redis.user": false} {
		s := external.ClusterSpec{Servers: []string{"10.0.0.1:6379"}, Properties: map[string]string{name: "user"}}
		d, err := external.New(redis.New(), s, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Check(0, nil); (err != nil) != refused || refused && !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
