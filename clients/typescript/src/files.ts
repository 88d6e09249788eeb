// Files to upload.

/** A file: a `File` or `Blob`, or its bytes. In Node.js, `openAsBlob` of `node:fs` opens the file of a path. */
export type FileContent = Blob | Uint8Array | ArrayBuffer;

/** The form that uploads a file, under its own name unless another one is given. */
export function form(file: FileContent, name: string | undefined, fields: { [name: string]: string | number | undefined }): FormData {
  const content = file instanceof Blob ? file : new Blob([file as BlobPart]);
  const own = file instanceof File ? file.name : "file";
  const parts = new FormData();
  for (const [field, value] of Object.entries(fields)) if (value !== undefined) parts.set(field, String(value));
  parts.set("file", content, name ?? own);
  return parts;
}
