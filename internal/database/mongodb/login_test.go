package mongodb

import (
	"strings"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"skerry/internal/database"
	"skerry/test/testkit"
)

// TestLogin: a client logs in as the user of its access, against the database that the URL names. A refusal is an error.
func TestLogin(t *testing.T) {
	t.Setenv("SKERRY_TEST_PASSWORD", "correct horse")
	for _, tt := range []struct{ query, source string }{{"", "admin"}, {"?authSource=ycsb", "ycsb"}} {
		var said atomic.Pointer[string]
		addr := testkit.Address(t)
		server, err := serveFake(addr, func(command bson.D) bson.D {
			raw, err := bson.Marshal(command)
			if err != nil {
				t.Error(err)
			}
			text := string(raw)
			if strings.Contains(text, "n=secured,") {
				said.Store(&text)
			}
			if isHello(command) {
				return hello(bson.E{Key: "ismaster", Value: true}, bson.E{Key: "msg", Value: "isdbgrid"})
			}
			return serverError(18, "AuthenticationFailed", "Authentication failed.")
		})
		if err != nil {
			t.Fatal(err)
		}
		access := database.Access{User: "secured", Password: database.PasswordSpec{Env: "SKERRY_TEST_PASSWORD"}}
		_, err = New().Open(t.Context(), map[string]string{
			PropURL: "mongodb://" + addr + "/ycsb" + tt.query, PropTimeout: "2000", database.PropAccess: access.Property("/"),
		})
		if err == nil || !strings.Contains(err.Error(), "Authentication failed") || strings.Contains(err.Error(), "correct horse") {
			t.Errorf("%s: %v", tt.query, err)
		}
		if text := said.Load(); text == nil || !strings.Contains(*text, tt.source) {
			t.Errorf("%s: the client did not log in as secured of %s", tt.query, tt.source)
		}
		server.close()
	}
}
