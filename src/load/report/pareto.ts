// The Pareto-optimal ones of several settings: none is at least as good in every figure and better in one. Figures that are better
// the smaller they are come negated.

/** The places of those that no other beats. @param each figures that are better the larger they are */
export const paretoOptimal = (each: readonly (readonly number[])[]): ReadonlySet<number> =>
  new Set(
    each.flatMap((own, at) =>
      each.some(
        (other, i) =>
          i !== at &&
          other.every((figure, n) => figure >= (own[n] ?? 0)) &&
          other.some((figure, n) => figure > (own[n] ?? 0)),
      )
        ? []
        : [at],
    ),
  )
