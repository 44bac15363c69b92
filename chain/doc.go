// Package chain is the way to one EVM chain: calls, the submitter of our transactions and the reader of the contracts' events.
//
// What it guarantees:
//
//   - An operation that was accepted ends: Succeeded or Failed, once, whatever process dies in between. See Submitter.
//   - A nonce is given once by the key's one submitter, durably together with the signed bytes, before anything is sent.
//   - A client's mistake comes back as such (revert, funds, gas, block), a node out of reach as pactwire.KindUnavailable, and an answer that
//     makes no sense as pactwire.KindBadUpstream. No call waits without a limit.
//
// What it does not: it does not keep keys of its own (see Signer), and it does not decide what a contract's data means (package contract).
package chain
