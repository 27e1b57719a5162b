/** File name that an object of a URL gets in its version. */
export function pathOfUrl(url: URL): string {
  const last = url.pathname.split('/').filter(Boolean).at(-1) ?? '';
  let name = last;
  try {
    name = decodeURIComponent(last);
  } catch {
    // taken as it stands
  }
  return name.replace(/[^A-Za-z0-9._-]+/g, '-') || 'model';
}
