package load

import (
	"fmt"

	"skerry/internal/load/ycsb"
	"skerry/internal/record"
)

// Keys returns what the keys of a zipfian workload that inserts were drawn for, nil for other drives.
func (r Result) Keys() *record.Keys {
	w := r.Spec.Workload
	inserts, bounded := w.ExpectedInserts()
	if !bounded || r.Spec.Phase != PhaseRun || r.Spec.Tree != nil {
		return nil
	}
	return &record.Keys{ExpectedOperations: w.ExpectedOperations, ExpectedInserts: inserts}
}

// KeyspaceWarning says that a workload inserted more records than its requests can choose, "" if it did not. YCSB
// draws the keys of a zipfian workload for a number of operations that is given beforehand.
func (r Result) KeyspaceWarning() string {
	k, inserts := r.Keys(), r.Operations[ycsb.Insert.String()]
	if k == nil || inserts == nil || inserts.OK <= k.ExpectedInserts {
		return ""
	}
	return fmt.Sprintf("%d records were inserted, and requests choose the first %d of them, since keys are drawn for %d operations",
		inserts.OK, k.ExpectedInserts, k.ExpectedOperations)
}
