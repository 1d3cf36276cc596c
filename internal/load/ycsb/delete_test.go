package ycsb

import "testing"

// TestDelete drives deletes and inserts of a small table and holds every operation against what
// is in it.
func TestDelete(t *testing.T) {
	w, _, err := Parse(Properties{"recordcount": "20", "readproportion": "0.2", "updateproportion": "0", "deleteproportion": "0.5", "insertproportion": "0.3"})
	if err != nil {
		t.Fatal(err)
	}
	there := map[int64]bool{}
	for n := range int64(20) {
		there[n] = true
	}
	s := NewSource(w, 1)
	g := s.NewGenerator()
	deletes, again := 0, 0
	for n := range uint64(5000) {
		op := g.Next(n)
		switch op.Kind {
		case Delete:
			if !there[op.Number] {
				t.Fatalf("operation %d deletes record %d, which is not there", n, op.Number)
			}
			delete(there, op.Number)
			s.Inserts().CompleteRemove(op.Number, true, false)
			deletes++
		case Insert:
			if there[op.Number] {
				t.Fatalf("operation %d inserts record %d, which is there", n, op.Number)
			}
			if op.Number < 20 {
				again++
			}
			there[op.Number] = true
			s.Inserts().Complete(op.Number, true)
		case Read:
			if !there[op.Number] {
				t.Fatalf("operation %d reads record %d, which is not there", n, op.Number)
			}
		}
		if len(there) < 10 {
			t.Fatalf("after operation %d no more than %d of 20 records are left", n, len(there))
		}
	}
	if deletes < 1000 || again < 1000 {
		t.Errorf("%d deletes, %d records inserted again, of 5000 operations", deletes, again)
	}
}

// TestRemoved tells what requests may choose after a delete that failed, and one in doubt.
func TestRemoved(t *testing.T) {
	c := NewInserts(3)
	c.Remove(1)
	c.Remove(2)
	if c.Remove(1) || c.Readable(1) || c.Readable(2) {
		t.Error("a record that is about to be deleted can be chosen")
	}
	c.CompleteRemove(1, false, false)
	c.CompleteRemove(2, false, true)
	if !c.Readable(1) || c.Readable(2) {
		t.Errorf("after a delete that failed the record can be chosen: %t, want true; after one in doubt: %t, want false", c.Readable(1), c.Readable(2))
	}
	if n := c.Next(); n != 3 {
		t.Errorf("the next insert is of record %d, want 3: nothing is known to be gone", n)
	}
}
