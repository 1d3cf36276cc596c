// Package hydraclient is Hydra's Go client: rows, scans and transactions over HTTP, with
// endpoints that are tried in turn. What certainly was not done is tried at the next
// endpoint; a write that may have been done is repeated only when it carries a request
// ID, which makes that harmless.
//
//	c, err := client.New(client.Config{Endpoints: []string{"127.0.0.1:7070"}})
//	row, err := c.Get(ctx, "accounts", "ada")
//	_, err = c.Transact(ctx, api.Transaction{
//		Checks: []api.Check{{Table: "accounts", Key: "ada", Is: command.GreaterOrEqual, Field: "balance", Value: json.RawMessage("5")}},
//		Writes: []api.Write{
//			{Do: command.Add, Table: "accounts", Key: "ada", Value: json.RawMessage(`{"balance":-5}`)},
//			{Do: command.Add, Table: "accounts", Key: "bob", Value: json.RawMessage(`{"balance":5}`)},
//		},
//	}, client.RequestID(client.NewRequestID()))
package hydraclient
