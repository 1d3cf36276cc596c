package server

import "skerry/systems/metadata/heat"

// LoadOf is what a server has to do, from the status of each of its replicas, which count
// what they answer themselves.
func LoadOf(replicas []Status) heat.Load {
	var parts []heat.Load
	for _, r := range replicas {
		if r.Load != nil {
			parts = append(parts, *r.Load)
		}
	}
	return heat.Sum(parts)
}
