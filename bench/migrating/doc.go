// Package migrating holds both sides of docs/migrating.md, run side by side: what a
// service wrote for a peer, and what it writes for ratetier.
package migrating
