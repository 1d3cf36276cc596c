package ycsb

import "testing"

func TestSuggest(t *testing.T) {
	for name, want := range map[string]string{
		"operations": "operationcount", "records": "recordcount", "Threads": "threadcount", "thread": "threadcount",
		"fieldlenght": "fieldlength", "measurementtypes": "measurementtype", "inserts": "insertcount, insertorder, insertproportion, insertstart",
		"flavour": "", "op": "",
	} {
		if got := suggestProperty(name, knownProperties()); got != want {
			t.Errorf("%s: suggests %q, want %q", name, got, want)
		}
	}
}
