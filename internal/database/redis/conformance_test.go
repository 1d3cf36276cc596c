package redis

import (
	"maps"
	"testing"

	"skerry/internal/database"
	"skerry/test/dbtest"
	"skerry/test/testkit"
)

func TestConformance(t *testing.T) { dbtest.Run(t, conformance()) }

func TestConformanceOfOtherSeries(t *testing.T) { dbtest.RunOtherSeries(t, conformance()) }

func conformance() dbtest.Config {
	return dbtest.Config{
		About: About, Port: defaultPort, Upsert: true,
		Options: writeBeforeReply, Survives: true, DiskFull: 4 << 20,
		BadOptions: []database.Options{{"masters": 2}, {"port": "x"}, {"appendfsync": "sometimes"}},
	}
}

func TestValkeyConformance(t *testing.T) {
	c := conformance()
	c.About = ValkeyAbout
	dbtest.Run(t, c)
}

func TestValkeyConformanceOfOtherSeries(t *testing.T) {
	c := conformance()
	c.About = ValkeyAbout
	dbtest.RunOtherSeries(t, c)
}

func TestValkeyReplicasJoinAndLeave(t *testing.T) {
	replicasComeAndGo(t, NewValkey(), testkit.Installed(ValkeyRecipe))
}

// Slots of masters with replicas are moved, where every change of a slot waits for the replicas.
func TestValkeyReplicatedSlots(t *testing.T) {
	joinAsMaster(t, NewValkey(), testkit.Installed(ValkeyRecipe), rebalancePipelined)
}

// Valkey itself moves slots of masters with replicas.
func TestValkeyMigratesReplicatedSlots(t *testing.T) {
	joinAsMaster(t, NewValkey(), testkit.Installed(ValkeyRecipe), rebalanceNative)
}

// The conformance suite of the default series with Skerry's own mover.
func TestValkeyConformancePipelined(t *testing.T) {
	c := conformance()
	c.About, c.Variant = ValkeyAbout, rebalancePipelined
	c.Options = maps.Clone(c.Options)
	c.Options["rebalance"] = rebalancePipelined
	dbtest.Run(t, c)
}
