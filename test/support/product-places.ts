// The number of places in the product's snapshot, so that no test repeats the figure.
import { readFileSync } from 'node:fs'

const text = readFileSync(new URL('../../locations.json', import.meta.url), 'utf8')
const { provenance } = JSON.parse(text) as { provenance: { counts: ProductCounts } }

type ProductCounts = Readonly<Record<'division' | 'district' | 'upazila' | 'union' | 'total', number>>

/** Places of each level and in total, of which none is unpublished. */
export const productCounts: ProductCounts = provenance.counts
