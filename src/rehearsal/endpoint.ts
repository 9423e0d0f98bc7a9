// The endpoint of the API that a path belongs to, by its words alone, as results name it.

/** `weather`, `forecast`, `coords`, `locations`, `location` or `other`. */
export const endpointOf = (path: string): string => {
  const [, kind, type, id] =
    /^\/api\/v1\/(weather|forecast|locations)(?:\/([^/?]+)(?:\/([^?]+))?)?(?:\?|$)/.exec(path) ?? []
  if (kind === undefined) return 'other'
  if (kind === 'locations') return type === undefined ? 'locations' : id === undefined ? 'other' : 'location'
  return type === 'coords' ? 'coords' : kind
}
