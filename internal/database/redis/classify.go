package redis

import (
	"errors"
	"strings"

	"skerry/internal/database"
	"skerry/internal/load"
)

// Classes of errors are those of package failure for connections. Those that Redis itself
// reports are its own words in lower case: "clusterdown", "loading", "readonly", "oom",
// "wrongtype", ...
const classMoved = "moved" // redirected more often than allowed

// classifyReply is an error that Redis reported. Redis did not carry the command out.
func classifyReply(addr string, text []byte) error {
	word, _, _ := strings.Cut(string(text), " ")
	class := database.ClassOther
	if word != "ERR" && word != "" && word == strings.ToUpper(word) {
		class = strings.ToLower(word)
	}
	return load.Failed(class, addr, errors.New(string(text)))
}
