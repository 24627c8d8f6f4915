# Prints TensorRT's headers as a base64-encoded tar. Arguments: DIRECTORY.
cd "$1" && tar -chf - Nv*.h | gzip -9 | base64
