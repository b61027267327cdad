import com.scurrilous.circe.checksum.Crc32cIntChecksum;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.HexFormat;
import org.apache.pulsar.common.api.proto.BrokerEntryMetadata;
import org.apache.pulsar.common.api.proto.MessageMetadata;
import org.apache.pulsar.common.compression.CompressionCodecProvider;
import org.apache.pulsar.common.protocol.Commands;

/** Prints what Apache Pulsar's own code reads in segments of a usage log, one line of JSON an entry. */
public class ReadLog {
    public static void main(String[] paths) throws Exception {
        for (String path : paths) {
            ByteBuffer file = ByteBuffer.wrap(Files.readAllBytes(Path.of(path)));
            while (file.hasRemaining()) {
                byte[] entry = new byte[file.getInt()];
                file.get(entry);
                print(Unpooled.wrappedBuffer(entry));
            }
        }
    }

    private static void print(ByteBuf entry) throws Exception {
        BrokerEntryMetadata broker = Commands.parseBrokerEntryMetadataIfExist(entry);
        boolean isRight = Commands.hasChecksum(entry);
        if (isRight) {
            isRight = Commands.readChecksum(entry) == Crc32cIntChecksum.computeChecksum(entry);
        }
        MessageMetadata metadata = Commands.parseMessageMetadata(entry);
        ByteBuf payload = CompressionCodecProvider.getCompressionCodec(metadata.getCompression())
                .decode(entry, metadata.getUncompressedSize());
        byte[] bytes = new byte[payload.readableBytes()];
        payload.readBytes(bytes);
        String digest = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
        System.out.printf(
                "{\"index\": %s, \"broker_timestamp\": %s, \"checksum\": %b, \"producer\": \"%s\", "
                        + "\"sequence_id\": %d, \"publish_time\": %d, \"compression\": \"%s\", "
                        + "\"rgd\": \"%s\", \"sha256\": \"%s\"}%n",
                broker == null || !broker.hasIndex() ? "null" : broker.getIndex(),
                broker == null || !broker.hasBrokerTimestamp() ? "null" : broker.getBrokerTimestamp(),
                isRight, metadata.getProducerName(), metadata.getSequenceId(), metadata.getPublishTime(),
                metadata.getCompression(), metadata.getPropertyAt(0).getValue(), digest);
    }
}
