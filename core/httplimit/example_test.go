package httplimit_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/httplimit"
)

// The tenant is in the JSON that is sent. The handler reads it, too.
func ExamplePeekBody() {
	identify := func(r *http.Request) (ratetier.Identity, error) {
		body, err := httplimit.PeekBody(r, 1<<10)
		if err != nil {
			return ratetier.Identity{}, err
		}
		var sent struct{ Tenant string }
		if json.Unmarshal(body, &sent) != nil || sent.Tenant == "" {
			return ratetier.Identity{}, ratetier.ErrNoIdentity
		}
		return ratetier.Identity{User: sent.Tenant, Tier: "free"}, nil
	}

	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"tenant": "acme"}`))
	identity, err := identify(r)
	fmt.Println(identity.User, err)
	rest, err := io.ReadAll(r.Body)
	fmt.Println(string(rest), err)

	_, err = identify(httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat(" ", 1<<10+1))))
	fmt.Println(err)
	// Output:
	// acme <nil>
	// {"tenant": "acme"} <nil>
	// ratetier: the body is larger than 1024 bytes
}
