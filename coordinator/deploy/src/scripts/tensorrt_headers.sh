# Prints TensorRT's headers as a tar in base64. Words: DIRECTORY.
cd "$1" && tar -chf - Nv*.h | gzip -9 | base64
