// Package archtest holds no code, only the test that enforces who may import whom: the table of docs/architecture.md, as far as imports can tell.
package archtest
