package ferretdb

import (
	"context"
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	drv "go.mongodb.org/mongo-driver/v2/mongo/options"

	"skerry/internal/database"
	"skerry/internal/database/mongodb"
	"skerry/internal/load"
	"skerry/test/dbtest"
	"skerry/test/testkit"
	"skerry/test/testkit/testhost"
)

// BenchmarkClient compares the reads of MongoDB's client with the loop that one would
// write by hand.
func BenchmarkClient(b *testing.B) {
	testkit.Need(b, testkit.Installed(Recipe))
	d := New()
	in, err := d.Find("", "")
	if err != nil {
		b.Fatal(err)
	}
	nodes := testhost.Loopback(b, 1)
	c, err := d.Start(b.Context(), database.Env{Nodes: nodes, Control: nodes[0], Installation: in})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Stop(context.Background())
	client, err := d.Open(b.Context(), c.Properties())
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	var fields []load.Field
	for i := range 10 {
		fields = append(fields, load.Field{Name: fmt.Sprint("field", i), Value: make([]byte, 100)})
	}
	if err := client.Insert(b.Context(), "", "user1", fields); err != nil {
		b.Fatal(err)
	}
	driver, err := mongo.Connect(drv.Client().ApplyURI(c.Properties()[mongodb.PropURL]))
	if err != nil {
		b.Fatal(err)
	}
	defer driver.Disconnect(context.Background())
	table := driver.Database("ycsb").Collection("usertable")
	var dst []load.Field
	b.Run("skerry", func(b *testing.B) {
		dbtest.CPU(b, func(ctx context.Context) (err error) {
			dst, err = client.Read(ctx, "", "user1", nil, dst[:0])
			return err
		})
	})
	b.Run("driver", func(b *testing.B) {
		dbtest.CPU(b, func(ctx context.Context) error {
			var document bson.M
			return table.FindOne(ctx, bson.D{{Key: "_id", Value: "user1"}}).Decode(&document)
		})
	})
}
