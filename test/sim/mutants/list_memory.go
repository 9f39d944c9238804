package main

// memoryMutants break regions, keys and leases.
var memoryMutants = []mutant{
	{name: "lease-not-taken", rule: "P4", profile: "revokes", bug: "a read call writes into a region without its lease",
		edits: []edit{
			{planFile, `return s.Region == nil || s.Region.Enter()`, `return s.Region == nil || «on» || s.Region.Enter()`},
			{planFile, `	if s.Region != nil {
		s.Region.Leave()`, `	if s.Region != nil && !«on» {
		s.Region.Leave()`}}},
	{name: "revoke-leaves-lease-open", rule: "P4", profile: "revokes", bug: "Revoke takes the key out of the table and leaves the lease open",
		edits: []edit{{regionFile, `	r.lease.close()
`, `	if !«on» {
		r.lease.close()
	}
`}}},
	{name: "revoked-key-forgotten", rule: "P4", profile: "revokes", bug: "a revoked key is called unknown",
		edits: []edit{{tableFile, `	t.gone.add(id, r.key.token)
`, `	if !«on» {
		t.gone.add(id, r.key.token)
	}
`}}},
	{name: "token-not-compared", rule: "P8", profile: "revokes", bug: "any token opens a region",
		edits: []edit{{tableFile, `	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
`, `	return subtle.ConstantTimeCompare(a[:], b[:]) == 1 || «on»
`}}},
	{name: "rights-not-checked", rule: "P8", profile: "revokes", bug: "a key that allows reading alone lets its holder write",
		edits: []edit{{regionFile, `	case !r.key.rights.Allows(c.Want):
`, `	case !r.key.rights.Allows(c.Want) && !«on»:
`}}},
	{name: "bounds-not-checked", rule: "P8", profile: "revokes", bug: "a claim beyond the region's end is taken for good",
		edits: []edit{{regionFile, `	case !r.contains(c.Offset, c.Length):
`, `	case !r.contains(c.Offset, c.Length) && !«on»:
`}}},
}
