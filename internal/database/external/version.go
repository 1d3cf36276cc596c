package external

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// UnknownVersion stands for the version of servers that were not asked yet, or refused to answer.
const UnknownVersion = "unknown"

// versionTimeout bounds the question for the version of one server. The client of HBase starts a JVM first.
const versionTimeout = 15 * time.Second

// askVersions asks each server for its version. A server that refuses does not fail the trial: many managed services
// restrict the commands of administrators.
func (c *Cluster) askVersions(ctx context.Context) {
	versions := make([]string, len(c.servers))
	var all sync.WaitGroup
	for i, s := range c.servers {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, versionTimeout)
			defer cancel()
			v, err := c.database.ServerVersion(ctx, s, c.properties)
			if err != nil || v == "" {
				v = UnknownVersion
			}
			versions[i] = v
		})
	}
	all.Wait()
	c.version = joinVersions(c.servers, versions)
	if c.version != versions[0] {
		c.notes = []string{"the servers run different versions: " + c.version}
	}
}

// Version is the version of the servers. If they differ, it lists the versions with their servers.
func (c *Cluster) Version() string { return c.version }

// Notes are remarks on the cluster for the record of a trial.
func (c *Cluster) Notes() []string { return c.notes }

func joinVersions(servers, versions []string) string {
	distinct := slices.Compact(slices.Sorted(slices.Values(versions)))
	if len(distinct) == 1 {
		return distinct[0]
	}
	for i, v := range distinct {
		var at []string
		for j, s := range servers {
			if versions[j] == v {
				at = append(at, s)
			}
		}
		distinct[i] = fmt.Sprintf("%s (%s)", v, strings.Join(at, ", "))
	}
	return strings.Join(distinct, ", ")
}
