package record

// Keys are the operations and inserts that YCSB's zipfian request distribution expects. Requests choose no
// record that is inserted beyond them.
type Keys struct {
	ExpectedOperations int64 `json:"expected_operations"`
	ExpectedInserts    int64 `json:"expected_inserts"`
}
