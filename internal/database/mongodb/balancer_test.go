package mongodb

import (
	"errors"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"skerry/internal/database"
)

func TestCheckBalanced(t *testing.T) {
	c, seen := talk(t, documented(t, "balancerCollectionStatus"), documented(t, "balancerCollectionStatus compliant"))
	if err := checkBalanced(t.Context(), c); !errors.Is(err, database.ErrNotReady) || !strings.Contains(err.Error(), "chunksImbalance") {
		t.Errorf("chunks that are to be moved: %v", err)
	}
	if err := checkBalanced(t.Context(), c); err != nil {
		t.Error(err)
	}
	expect(t, seen, `admin {"balancerCollectionStatus":"ycsb.usertable"}`, `admin {"balancerCollectionStatus":"ycsb.usertable"}`)
}

// TestCheckBalancedBefore44 asks MongoDB 4.2, which has no command for it.
func TestCheckBalancedBefore44(t *testing.T) {
	chunks := func(of ...bson.D) bson.D {
		return done(bson.E{Key: "cursor", Value: bson.D{{Key: "id", Value: int64(0)}, {Key: "ns", Value: "config.chunks"}, {Key: "firstBatch", Value: of}}})
	}
	on := func(shard string, n int) bson.D { return bson.D{{Key: "_id", Value: shard}, {Key: "n", Value: n}} }
	missing := serverError(codeCommandNotFound, "CommandNotFound", "no such command: 'balancerCollectionStatus'")
	c, seen := talk(t, missing, documented(t, "listShards"), chunks(on("shard01", 4), on("shard02", 4)),
		missing, documented(t, "listShards"), chunks(on("shard01", 3), on("shard02", 3), on("shard03", 2)))
	if err := checkBalanced(t.Context(), c); !errors.Is(err, database.ErrNotReady) || !strings.Contains(err.Error(), "[4 4 0]") {
		t.Errorf("chunks that are to be moved: %v", err)
	}
	if err := checkBalanced(t.Context(), c); err != nil {
		t.Error(err)
	}
	if got := seen(); len(got) != 6 || !strings.HasPrefix(got[2], `config {"aggregate":"chunks","pipeline":[{"$match":{"ns":"ycsb.usertable"}}`) {
		t.Errorf("commands %q", got)
	}
}

func TestIsEven(t *testing.T) {
	for _, test := range []struct {
		chunks []int
		want   bool
	}{
		{nil, true},
		{[]int{0, 0}, true},
		{[]int{2, 2, 2, 0}, true}, // the mean of 1.5 is rounded up: the new shard stays empty
		{[]int{4, 4, 0}, false},
		{[]int{3, 3, 2}, true},
		{[]int{3, 1, 1, 1, 1, 1, 1, 1}, true}, // rounded down: nobody has less
		{[]int{3, 1, 0, 1, 1, 1, 1, 1}, false},
	} {
		if got := isEven(test.chunks); got != test.want {
			t.Errorf("%v: %v, want %v", test.chunks, got, test.want)
		}
	}
}
